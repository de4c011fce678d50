"""`annotator embed`: the missing features of a project, made here or on a Ray cluster.

embed_now.py claims the project, plans what is missing and hands chunks of images to an executor (local_executor.py,
cluster_executor.py); nothing but this process touches the project. cluster_executor.py says why Ray Data is not used.
Begin with embed_now.py.
"""
