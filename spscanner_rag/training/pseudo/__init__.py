"""Questions made from plain text, scored by a teacher."""
