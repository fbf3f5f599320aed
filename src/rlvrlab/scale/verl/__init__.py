"""verl 0.9.1 (Ray, FSDP, vLLM or SGLang) as the trainer of a recipe.

verl owns its loop; this room prepares it, plugs into it and brings its results back:
    keys      recipe -> verl's configuration
    refusals  what verl cannot honour, refused by name
    export    a folder with data, configuration, reward module and launch scripts
    plugin    loaded by verl in every Ray process: reward, advantages, losses, trainer, surgery on shards
    launch    `rlvr train RECIPE --engine verl`: start, follow, merge checkpoints, resume
Nothing here imports verl, Ray or torch before it is used.
"""

VERSION = "0.9.1"
"""The only version of verl this room is tested with."""
PLAN = "RLVR_VERL_PLAN"
"""Environment variable that leads every Ray process to the folder of the run's job."""
CODE = "RLVR_VERL_CODE"
"""Environment variable with the code that a run was started with; a process with any other refuses to take part."""
EPISODES = "rlvr_episodes"
"""The agent loop of verl that plays episodes with tools."""
ANSWERS = "rlvr_answers"
"""The agent loop of verl for one turn, with a seed for every answer."""
