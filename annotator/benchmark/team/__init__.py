"""A team at work at once on one server, as `annotator serve --auth invitation` serves it: is it as quick and as safe as
for one person?

    measure.py      the phases: one browser alone, then everybody
    teammates.py    people without a browser: what a page sends, at a person's pace
    browsers.py     people in front of a real Chromium, whose keys are timed
    freed.py        how long the work of people who have gone stays leased
    watch.py        the server's memory and its processor time

Begin with measure.py. May import what benchmark's other packages do.
"""
