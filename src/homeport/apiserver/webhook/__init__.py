"""Webhooks: asking others about objects. Matching, reviews and what answers mean; the wire is in http/webhook.py."""
