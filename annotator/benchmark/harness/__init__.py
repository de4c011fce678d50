"""What every benchmark stands on, one mechanism each.

processes.py starts Python processes and servers, waits for them and ends them; tied.py ends them when the benchmark is
killed. scratch.py has the temporary folder, browser.py the Chromium, ray_cluster.py a Ray cluster of processes.
projects.py makes projects of image files, bulk.py projects of a million rows. page_alone.py is the app without its
worker; floor.py is the least that a page can do.
"""
