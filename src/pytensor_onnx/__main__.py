"""``python -m pytensor_onnx``: the command line."""

from pytensor_onnx_command import main

if __name__ == "__main__":
    main()
