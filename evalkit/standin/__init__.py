"""The generated world: robot, objects, textures and planner for machines without the official assets."""
