"""The methods of `Dataset`, one file for each purpose."""
