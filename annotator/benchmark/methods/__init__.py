"""`annotator bench methods`: every method, side by side, on anybody's data; measure.py is the place to begin.

task.py options.py data.py work.py                   labels and figures of one seed; choices; features; what is done
cells.py on_cluster.py                               the trainings of a comparison; on the machines of a Ray cluster
trainers.py images.py finetune.py epochs.py          one training, by models/trainers; its inputs; choosing the epoch
tune.py report.py plot.py                            equal budgets; tables and plots
"""
