import threading
from http.client import HTTPConnection

import pytest

from pytensor_onnx.web.packages import make_server


@pytest.fixture
def get(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "main.js").write_text("1")
    (folder / "model.wasm").write_text("2")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    with make_server(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def answer(path):
            connection = HTTPConnection(*server.server_address)
            connection.putrequest("GET", path, skip_accept_encoding=True)
            connection.endheaders()
            response = connection.getresponse()
            body = response.read()
            connection.close()
            return response, body

        yield answer
        server.shutdown()
        thread.join()


def test_pages_are_isolated_and_typed(get):
    response, body = get("/main.js")
    assert (response.status, body) == (200, b"1")
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert response.headers["Content-Type"] == "text/javascript"
    assert get("/model.wasm")[0].headers["Content-Type"] == "application/wasm"


@pytest.mark.parametrize("path", ["/", "/../secret.txt", "/%2e%2e/secret.txt", "/link.txt", "/no"])
def test_nothing_else_is_served(get, path):
    response, body = get(path)
    assert response.status == 404
    assert b"secret" not in body


def test_pages_that_are_closed_while_a_file_is_sent_are_no_errors(tmp_path, capsys):
    with make_server(tmp_path) as server:
        try:
            raise ConnectionResetError
        except ConnectionError:
            server.handle_error(None, ("127.0.0.1", 1))
        assert not capsys.readouterr().err
        try:
            raise KeyError
        except KeyError:
            server.handle_error(None, ("127.0.0.1", 1))
        assert "KeyError" in capsys.readouterr().err
