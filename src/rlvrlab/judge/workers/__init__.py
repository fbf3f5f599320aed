"""The trusted side of the jail: processes that run candidates, and pools of them."""
