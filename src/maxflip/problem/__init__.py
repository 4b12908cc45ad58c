"""What is asked: classifier, cohort, goal, budgets and limits, each checked once."""
