"""The traced graph and its uses: replayed, interpreted, differentiated, shown."""
