"""The worker process: it embeds images, trains models and publishes predictions as labels arrive.

Never imports Streamlit: worker and pages share only the store. Entry point: process.py.
"""
