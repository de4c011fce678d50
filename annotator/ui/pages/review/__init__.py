"""The Review page: suggestions to confirm. Begin with review_page.py and review.js."""
