"""What is asked of records: one room per question."""
