"""`annotator bench`: the commands of the measurements.

speed.py has those of speed and reliability and the shared options, labels.py those of what people get, methods.py
those of methods and their papers, finish.py the public benchmark. Begin with speed.py.
"""
