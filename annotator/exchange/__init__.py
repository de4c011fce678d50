"""Data in, data out: making a project from a folder, importing, and writing the finished data set; without torch.

setup.py is `annotator init`. imports/ brings labels and images in, exports/ writes the finished data set; both go
through formats/, one file a format. sources/ unpacks or downloads what is not a folder of images, predictions/ takes
scores of other models, files/ reads what may be broken or hostile. frames.py makes tables for programs, answers.py
stores what programs decide. May import quality, snapshot and store; begin with imports/importing.py and
exports/export.py.
"""
