"""Is the reward earned, or taken? Monitors for training and evaluation; a finding says what was seen and where."""
