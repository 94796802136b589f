"""Programs: their making from graphs, functions and training steps, and what they can do."""
