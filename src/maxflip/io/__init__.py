"""Everything on disk: the job file, cohort readers, model loading, the plan folder."""
