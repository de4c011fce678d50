"""The page process: Streamlit pages, the routes their components talk to, and the watch over the worker; no torch.

    server.py watch.py ending.py streamlit_options.py      starting, the worker beside it, the end, Streamlit's options
    access.py door.py closed.py sessions.py allowance.py   who gets in, what others see, how much they may ask
    provider.py                                            why a login failed; names that its ID token does not hold
    keys.py tokens.py sockets.py readers.py                what a request passes; threads that read image files
    context.py frame.py charts/ tables.py class_adding.py  the project that is served; what pages share
    drafts.py                                              tables that keep what was typed and not saved
    note_list.py                                           flags and comments as a list
    logs.py home/                                          the log as JSON; several projects behind one address
    navigation.py shell.py pages/ components/              pages: their table, HTML, a file each, ES modules
    networks.py adapting.py class_names.py                 the network, adapting it, guesses from names, on Settings
    adding.py ahead.py                                     folders of images that are being added; what is read ahead
    importing.py uploads.py paths.py                       an import, files that browsers send, what pages may read
    background.py downloads.py export/                     long computations, files to download; the Export page
    routes/ entry/                                         a file per kind of answer; Streamlit's entry script

May import queues, exchange, quality, snapshot and store; never worker. Begin with server.py.
"""
