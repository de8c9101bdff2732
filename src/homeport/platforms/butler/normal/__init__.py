"""One model per kind, whichever way an object is written: aliases resolved, defaults filled in, faults named.

The functions are pure. Admission refuses what has faults; controllers call the same functions, so an object that was
stored without admission is reported with the same words. The stored object is never changed.
"""
