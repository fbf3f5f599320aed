"""Combining the gradients of groups, and keeping a step from harming a skill: functions of the Gramian alone."""
