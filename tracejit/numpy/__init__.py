from tracejit.numpy.elementwise import *
