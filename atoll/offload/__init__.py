"""Job processes: control work without a useful bound runs outside the event loop and its GIL.

    jobs.py     what a job is, what it returns, how it fails
    pool.py     the queue of jobs, fair between tenants, and the processes that run them
    process.py  one job process, as the node sees it
    child.py    the program of a job process
    spool.py    large bodies in files without names, and how many bytes they may take

A job is a function of bytes and small arguments, named by a constant in the code: `Job("atoll.observe.maps:decoded")`.
"""
