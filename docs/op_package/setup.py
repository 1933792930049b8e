from setuptools import Extension, setup

import tracejit as tj

# A plain shared library beside the package's Python: no Python is called from it.
library = Extension("my_ops.library", ["src/my_ops/my_ops.c"], include_dirs=[tj.ffi.header_dir()])
setup(ext_modules=[library])
