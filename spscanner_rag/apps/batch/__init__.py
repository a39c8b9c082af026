"""Many questions and documents from files, scanned into parts that an interrupted run keeps."""
