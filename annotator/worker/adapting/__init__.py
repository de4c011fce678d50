"""`annotator adapt`: the last stages of a project's network are trained on its answers (models/finetune/adapt.py).

adapt_now.py is the place to begin. One process at a time does it (store/networks/adaptation.py), beside the worker and at low
priority; it may be killed or paused at any moment, and goes on from its last epoch. Its network is used only if it is
better on answers that it has not seen, and only once all images have features of it.

    adapt_now.py    claim, plan or go on, estimate, train, keep
    plan.py         which images, answers and held-out images: settled when it begins
    inputs.py       what the frozen stages give of these images, on the disk
    local.py        the training on this machine, and the network in its folder
    cluster_training.py                 the same by Ray Train: the process that waits
    node_run.py node_training.py       what runs on the machines; node_task.py: what they get and say of themselves
    judge.py        parent and child compared on held-out answers
    card.py         the model card
    work.py         heartbeats, progress, the wish to stop
    switching.py    features of the new network while people go on with the old, then the switch; starts what the
                    Settings page asks for
"""
