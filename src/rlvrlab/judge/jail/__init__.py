"""What runs on the far side: worker (zygote) and template, the walls (Landlock, seccomp, limits), the roles of a child.

Standard library only: these modules are imported by an interpreter started without site-packages.
"""
