"""`annotator bench methods`: every method, side by side, on anybody's data; measure.py is the place to begin.

task.py options.py data.py work.py                   labels and figures of one seed; choices; features; what is done
trainers.py linear.py parts.py maps.py finetune.py   one training: on features, on regions, on maps, of the network
epochs.py tune.py report.py plot.py                  going on after a kill; equal budgets; tables and plots
"""
