"""The worker process: it embeds images, trains, publishes runs and corrects them as decisions arrive.

process.py is the loop and the place to begin; schedule.py says when it trains, train.py how one run is made. It may
import everything below it (queues, exchange, quality, snapshot, store, models) and never Streamlit; the page and the
worker meet only in the store.

    training_set.py train.py train_regions.py train_maps.py calibrate.py    one training, from labels to a published run
    embed.py region_cache.py map_cache.py backbone.py                       features, and what else methods read
    incremental_update.py update_thread.py                                  versions of the run between trainings
    layout.py missing_files.py explain.py train_now.py                 the map's layout, lost files, heat maps, `train`
"""
