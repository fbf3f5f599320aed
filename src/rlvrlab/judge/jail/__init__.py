"""What runs on the far side: the fork server (zygote), the walls (Landlock, seccomp, limits) and the roles of a child.

Standard library only: these modules are imported by an interpreter started without site-packages.
"""
