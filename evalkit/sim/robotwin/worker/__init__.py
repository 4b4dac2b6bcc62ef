"""The process that runs RoboTwin's task code. Self-contained: numpy and RoboTwin only, Python 3.8 and newer.

The host starts this folder as a program (``python .../worker``) with RoboTwin's interpreter, so nothing of evalkit is
imported there, and nothing of RoboTwin is imported here.
"""
