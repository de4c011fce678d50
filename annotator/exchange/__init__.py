"""Project creation, imports and exports without torch. May import quality, snapshot and store."""
