"""The worker process: it embeds images, trains, publishes runs and corrects them as decisions arrive.

process.py is the loop over the duties and the place to begin. The worker may import everything below it (queues,
exchange, quality, snapshot, store, models) and never Streamlit; the page and the worker meet only in the store.

    context.py                                          what the duties share: features, network, heartbeat, stop
    missing_features.py training.py heatmaps.py         the duties of the loop; schedule.py: when to train
    first_orders.py                                     which images come first before there is a run
    work_list.py away.py                                which images are embedded next; addresses that do not answer
    update_thread.py missing_files.py layout.py         the duties with a thread of their own
    train.py training_set.py calibrate.py publish.py    one training, from labels to a published run (models/trainers)
    fitted_images.py                                    images that an adapted network was fitted to, in a training
    scoring.py                                          all images scored by what was learned, on a Ray cluster
    outside.py                                          predictions of other models, as a training reads them
    name_guesses.py                                     first guesses from the names of classes, as one of these
    project_images.py project_maps.py                   what trainers read of a project's images
    embed.py explain.py incremental_update.py           files -> features; one heat map; one version of a run
    coding.py region_cache.py map_cache.py image_codes.py    what is kept of regions, maps and images
    backbone.py                                         whether a network can be had
    train_now.py embedding/                             `annotator train`; `annotator embed`, here or on a cluster
    adapting/ comparing.py                              `annotator adapt`: the network learns from answers, too;
                                                        `annotator backbone`: networks compared on answers
"""
