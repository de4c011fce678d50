"""Work on the machines of a Ray cluster: reaching one, and having calls of a function done there.

Ray is an extra that most machines do not have: it is imported inside of functions. What is here knows nothing of
projects, and imports nothing but annotator.errors.

    connection.py   reach a cluster, or start one on this machine; its errors in words
    last_word.py    what is said when Ray ends the process that uses it
    tasks.py        calls of a function: which machine gets which, what happens to lost ones
    versions.py     whether a machine has the same program
"""
