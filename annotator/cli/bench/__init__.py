"""`annotator bench`: measurements that people run on their own images, or that a researcher repeats.

bench_inputs.py has the group and what its commands share, labels.py the commands on people's own images, methods.py
those of methods and their papers, finish.py the public benchmark. Begin with bench_inputs.py.
"""
