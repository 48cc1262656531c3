"""Task sets from the libraries that hold trainers' data: `datasets`, streamed and not, and parquet files in verl's form by pyarrow."""
import json
import os
import tempfile

import datasets
import pyarrow
import pyarrow.parquet

from common import MATH, UNREADABLE, client_of, done, service
import rolloutd.tasks  # common says where it is

ROWS = [{"question": f"{number}+1=", "answer": UNREADABLE if number == 700 else str(number + 1)} for number in range(1000)]
MAPPING = {"prompt": "question", "reference": "answer"}


def verl_rows():
    for number in range(3000):
        yield {"data_source": "sums", "prompt": [{"role": "user", "content": f"{number}+1="}], "ability": "math", "reward_model": {"style": "rule", "ground_truth": str(number + 1)},
               "extra_info": {"split": "train", "index": number}}


def main():
    with service() as made, tempfile.TemporaryDirectory() as folder:
        client = client_of(made)
        whole = rolloutd.tasks.from_hf(client, "whole", datasets.Dataset.from_list(ROWS), MAPPING, MATH)
        streamed = rolloutd.tasks.from_hf(client, "streamed", datasets.Dataset.from_list(ROWS).to_iterable_dataset(), MAPPING)
        assert whole.tasks == streamed.tasks == 1000 and [task for task, why in whole.unreadable] == ["700"]
        path = os.path.join(folder, "train.parquet")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(verl_rows())), path)
        assert rolloutd.tasks.from_verl(client, "parquet", path, MATH) == rolloutd.tasks.Filled("parquet", 3000, client.get("/v1/tasksets/parquet")["sha256"], [])
        assert client.get("/v1/tasksets/parquet/tasks/sums-train-2999")["reference"] == "3000"
        for name, content, problem in (("lines", "{\n", json.JSONDecodeError), ("missing", '{"question": "q"}\n', KeyError), ("number", "7\n", TypeError)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(content)
            try:
                rolloutd.tasks.from_jsonl(client, name, os.path.join(folder, name), MAPPING)
                raise AssertionError(f"{name} became a task set")
            except problem:
                assert all(item["set"] != name for item in client.get("/v1/tasksets")["items"])
    done("data", "datasets of Hugging Face, streamed too; 3,000 rows of parquet; broken files make no set")


if __name__ == "__main__":
    main()
