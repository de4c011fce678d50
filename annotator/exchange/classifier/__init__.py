"""A classifier to take home: its file, how it is run without torch, and its card.

Begin with onnx_classifier.py, which reads a file and gives probabilities. What the file states about itself is in
description.py. The file is made by worker/taking_home, because that takes torch.
"""
