"""Configurations beside files of networks."""

import json

import pytest

from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.web.configurations import facts_of, read_configuration


def test_configurations_of_transformers():
    found = facts_of(
        {
            "architectures": ["ViTForImageClassification"],
            "id2label": {"10": "bird", "0": "cat", "2": "dog"},
            "size": {"height": 224, "width": 192},
            "image_mean": [0.5, 0.4, 0.3],
            "image_std": [0.2, 0.2, 0.3],
        }
    )
    assert {key: json.loads(text) for key, text in found.items()} == {
        "names": ["cat", "dog", "bird"],
        "image_size": [224, 192],
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.2, 0.2, 0.3],
    }
    assert facts_of({"size": {"shortest_edge": 20}}) == {"image_size": "[20, 20]"}
    assert facts_of({"size": 30}) == {"image_size": "[30, 30]"}
    assert facts_of({"size": "large"}) == {}
    assert facts_of({"id2label": {"cat": 0}}) == {}


def test_configuration_of_magika():
    given = {"beg_size": 3, "end_size": 2, "padding_token": 256, "target_labels_space": ["c", "go"]}
    assert facts_of(given) == {
        "names": '["c", "go"]',
        "first_bytes": "3",
        "last_bytes": "2",
        "padding": "256",
    }


def test_a_text_has_a_class_in_each_line(tmp_path):
    file = tmp_path / "labels.txt"
    file.write_text("cat\n\n a dog \n", encoding="utf-8")
    assert read_configuration(file) == {"names": '["cat", "a dog"]'}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", "is no JSON"),
        ("a.json", b'{"layers": 3}', "has nothing that a page uses"),
        ("a.json", b"3", "has nothing that a page uses"),
        ("a.txt", b"\xff\xfe\x00", "neither JSON nor a text"),
        ("a.txt", b"\n", "has nothing"),
    ],
)
def test_files_that_tell_nothing_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PyTensorONNXError, match=message):
        read_configuration(tmp_path / name)
