"""What every benchmark stands on: processes, a browser, projects and floors, one mechanism each.

processes.py starts Python processes and servers that end with the benchmark (tied.py, however it ends) and waits for
them; browser.py starts Chromium; projects.py makes projects of real image files, generated.py projects of a million
rows. page_alone.py is the app without its worker; floor.py and bare.py are the least that a page and a server can do.
"""
