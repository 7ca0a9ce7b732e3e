"""A user teaches a model month by month: how much does it get right in the end?"""
