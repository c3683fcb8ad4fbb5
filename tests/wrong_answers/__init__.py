"""Ten plausible wrong answers for every exercise, one module a chapter.

Each module has a dict `WRONG`: the task's name → what learners might hand in.  For a value these
are numbers for the book's own question.  None of them may pass.
"""
