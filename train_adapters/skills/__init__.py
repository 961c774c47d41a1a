"""Skills: a short text of lessons, learnt from trajectories, that the agent's prompts show beside the task.

After the idea of Trace2Skill: trajectories are read one by one for lessons, lessons become edits of one document, and
the edits are merged and applied by a program. `coevolution` renews it in turn with the weights.
"""
