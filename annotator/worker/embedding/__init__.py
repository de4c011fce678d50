"""`annotator embed`: the missing features of a project, made on this machine or on the machines of a Ray cluster.

embed_now.py is the place to begin. It claims the project (store/networks/embedding.py), plans what is missing, hands chunks of
images to an executor and writes what comes back; nothing but this process touches the project. What is here may import
what the worker may; ray is imported inside of functions, because it is an extra that most machines do not have.
annotator/cluster/ reaches the cluster.

    embed_now.py                  plan, claim, run, say how it went
    chunks.py                     the images that remain, cut into chunks; what happens to a lost chunk
    results.py progress.py        features and notes into the project; how fast it is, and how long it takes yet
    local.py                      the executor of this machine
    pool.py members.py            the executor of a cluster: which machine gets which chunk; its workers
    node.py node_network.py       what runs on a machine of the cluster: reads, embeds, returns; the network there

Ray Data is not used, although it maps batches with pools of actors, too. What is lost with a worker must be one chunk,
known by its images, since each must be in the shards exactly once and a file that kills its reader must be found; Ray
Data hides which rows were in a lost task. Its pipelines are hardly supported through `ray://`
(https://github.com/ray-project/ray/issues/39860), and lost blocks of a lost machine are made again by lineage, outside
of its back-pressure (docs.ray.io, Ray Data, fault tolerance). So there are actors, one chunk at work and one waiting
for each, and a queue of our own. Ray's own retries are off (max_restarts = max_task_retries = 0): the queue knows more.
"""
