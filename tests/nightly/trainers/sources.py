"""The trainers' packages, unpacked side by side and not installed: sources.py FOLDER."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

WHEELS = [("openrlhf", "openrlhf==0.11.2", "3.11"), ("verl", "verl==0.9.1", "3.11"), ("verifiers-0.1", "verifiers==0.1.14", "3.11"), ("nemo_gym", "nemo-gym==0.7.0", "3.14")]
SLIME, COMMIT = "https://github.com/THUDM/slime", "624b824a898ab0ec1fcb4d373004c7f3852bf515"


def unpack(wheel, folder):
    """Some wheels keep their modules in NAME.data/purelib."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    for inner in glob.glob(os.path.join(folder, "*.data", "purelib", "*")):
        shutil.move(inner, folder)


def fetch_wheel(folder, name, package, python):
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", python, "-d", scratch, package], check=True)
        unpack(*glob.glob(os.path.join(scratch, "*.whl")), os.path.join(folder, name))


def fetch_slime(folder):
    given = os.environ.get("ROLLOUTD_SLIME_GIT")
    with tempfile.TemporaryDirectory() as scratch:
        git = ["git", "--git-dir", given or scratch]
        if not given:
            subprocess.run([*git, "init", "-q", "--bare"], check=True)
            subprocess.run([*git, "fetch", "-q", "--depth", "1", SLIME, COMMIT], check=True)
        archive = subprocess.run([*git, "archive", COMMIT, "slime/rollout", "slime/utils"], check=True, stdout=subprocess.PIPE).stdout
    os.makedirs(os.path.join(folder, "slime"), exist_ok=True)
    subprocess.run(["tar", "-x", "-C", os.path.join(folder, "slime")], input=archive, check=True)


if __name__ == "__main__":
    target = sys.argv[1]
    os.makedirs(target, exist_ok=True)
    for row in WHEELS:
        fetch_wheel(target, *row)
    fetch_slime(target)
    open(os.path.join(target, "ready"), "w").close()
