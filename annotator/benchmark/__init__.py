"""Measurements that anybody can repeat: one file each, `measure(...)` in it, called by `annotator bench`.

Every one returns {"bench": name, "figures": {name: number}, "ratios": {name: number}} with the units in the names, and
measures ours and what it is compared with in the same run, in turns: figures of another day or machine say nothing.
Temporary projects and processes are gone when a measurement ends, however it ends.

    interface/ freshness.py store.py embedding.py        speed: keys, answers to decisions, routes, images a second
    data/                                                speed and memory: labels out and in, format by format
    scale/                                               speed and memory: trainings of a million images, clusters
    methods/ effort/ heatmaps.py adapting.py             quality: methods, human effort, heat maps, adapted networks
    differing.py                                         quality: what answers of people who err teach
    finish/                                              quality: a public protocol, for tools of others as well
    collections/                                         quality: `auto` against the best published method everywhere
    variants/ names.py                                   quality: packaged networks used otherwise, guesses from names
    certificate.py acceptance.py pace.py faults/         guarantees: intervals, auto-accept, times of people, kills
    erring_people.py                                     people who err, in the projects of certificate.py
    team/                                                speed and guarantees: many people at once
    harness/                                             processes, browser, projects and floors for all of these
    datasets/ truth.py boxes.py naming.py                sets of the papers, or a folder with its truth; clicks
"""
