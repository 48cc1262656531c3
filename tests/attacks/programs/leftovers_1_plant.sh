# Files with marks in every place that a later program could look into.
# expected: verdict=pass|ok|runtime_error
# stdout: PLANTED\n
# runs: 4
for folder in . /tmp /dev/shm /var/tmp /run /box "$HOME" /usr/lib /etc /dev /proc /run/lock; do
    echo attack-left > "$folder/attack_left_1" 2>/dev/null
    mkfifo "$folder/attack_pipe" 2>/dev/null
    mkdir "$folder/attack_folder" 2>/dev/null
    ln -s /etc/passwd "$folder/attack_link" 2>/dev/null
done
echo PLANTED
