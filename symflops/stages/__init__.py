"""The stages of the pipeline: read, build, derive, lower, emit. One public function each."""
