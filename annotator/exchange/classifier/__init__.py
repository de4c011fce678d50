"""Exported classifiers and their model cards, used without torch. Start with onnx_classifier.py."""
