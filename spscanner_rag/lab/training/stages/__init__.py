"""What each stage of training optimizes and validates."""
