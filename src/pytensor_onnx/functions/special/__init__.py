"""Special and elementary functions, from the operators that every ONNX runtime has.

Importing the package fills the registry. The accuracy of each function is measured, by region, in
``docs/reference/accuracy.md``; its docstring says where the error passes 4 units in the last place.
"""

from pytensor_onnx.late_names import import_modules

import_modules(__name__)
